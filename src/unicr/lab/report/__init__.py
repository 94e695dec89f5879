"""What people look at: descriptions, plots and pages made from results."""
